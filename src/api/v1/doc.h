/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of the native API. One row per route says what it takes and what it answers. The same
 * rows route requests, check their fields, and become the OpenAPI document (openapi.c).
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "api/route.h"
#include "base/buf.h"
#include "base/err.h"

enum v1_type {
	V1_TEXT = 1,
	V1_BOOL,
	V1_INT,
	V1_NUMBER,
	V1_OBJECT, /* with the members of `of` */
	V1_ARRAY,  /* of values as the first row of `of` */
	V1_MAP,	   /* an object of texts with any keys */
	V1_REF,	   /* answers only: the shape named by `ref` */
	V1_ANY,	   /* answers only: any value */
};

enum v1_flags {
	V1_REQUIRED = 1, /* requests: must be given */
	V1_OPTIONAL = 2, /* answers: may be missing */
	V1_NULL = 4,	 /* answers: may be null */
	V1_RAW = 8, /* answers: text from inside a sandbox; {"b64":…} where it is not UTF-8 */
};

/* A member of an object, or a parameter of a query. A table ends with a row without a name. */
struct v1_field {
	const char *name;
	enum v1_type type;
	const char *about;
	unsigned flags;
	int64_t least, most;	   /* INT: the range; TEXT, ARRAY, MAP: the length; most 0: any */
	const char *choices;	   /* "kill|pause"; NULL: any text */
	const struct v1_field *of; /* OBJECT, ARRAY */
	const char *ref;
};

/* The shape of an answer, with its name in the document. */
struct v1_shape {
	const char *name, *about;
	const struct v1_field *fields;
};
extern const struct v1_shape v1_shapes[];
extern const size_t nv1_shapes;

struct route_answer {
	int status; /* 0: the end of the list */
	const char *about;
	const char *shape; /* of JSON; NULL: none */
	const char *type;  /* of a body that is not JSON; NULL: JSON, or no body */
	bool list;	   /* {"items":[SHAPE…],"next":…} */
	const char *also;  /* another type that the body may have */
};

enum { ROUTE_ANSWERS = 4 };

struct route_doc {
	const char *name; /* of the operation, unique */
	const char *tag, *summary, *about;
	const struct v1_field *query, *body;
	const char *raw; /* content type of a body that is not JSON */
	struct route_answer answers[ROUTE_ANSWERS];
	const char *errors; /* codes of its own: "sandbox.busy calls.running"; NULL: none */
};

struct v1_route {
	struct route route;
	const struct route_doc *doc;
};

extern const struct v1_route v1_routes[];
extern const size_t nv1_routes;

/* As route_find(). */
const struct route *v1_route_find(struct str method, struct str path, struct route_params *p,
				  bool *ret_other);
/* NULL: not a route of the native API. */
static inline const struct route_doc *route_doc(const struct route *r)
{
	return r->flags & ROUTE_NATIVE ? container_of(r, struct v1_route, route)->doc : NULL;
}

/* INVALID with the field's name: unknown, of another type, out of range, or missing. */
int v1_check(const json_t *body, const struct v1_field *fields, struct err *e);
/* The same for a raw query. */
int v1_check_query(struct str query, const struct v1_field *fields, struct err *e);
/* The whole document. 0 or -errno. */
int v1_openapi_put(struct buf *out);
