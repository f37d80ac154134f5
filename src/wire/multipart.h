/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read multipart/form-data (RFC 7578) piece by piece; content is passed on and never stored.
 * Line ends are CRLF only.
 */
#pragma once

#include "base/buf.h"
#include "base/limits.h"

enum multipart_event {
	MULTIPART_MORE,	    /* need more input */
	MULTIPART_PART,	    /* a part begins: m->name, m->filename, m->type */
	MULTIPART_DATA,	    /* *ret: the next bytes of the part */
	MULTIPART_PART_END, /* the part is complete */
	MULTIPART_END,	    /* the last part was complete; anything after it is ignored */
};

enum { MULTIPART_BOUNDARY = 70 };

struct multipart {
	int state;
	unsigned parts;
	char mark[4 + MULTIPART_BOUNDARY]; /* CR LF - - boundary */
	size_t mark_n;
	size_t matched; /* bytes of mark that were seen and not passed on */
	struct buf head;
	struct str name;     /* of the current part; views of head */
	struct str filename; /* raw UTF-8; "%22", "%0D" and "%0A" stay escaped */
	bool has_filename;
	struct str type;
	const char *why; /* after an error */
};

/* content_type: the request's header. -EBADMSG if it is not multipart/form-data with a boundary. */
int multipart_init(struct multipart *m, struct str content_type);
void multipart_done(struct multipart *m);
DEFINE_AUTO(struct multipart, multipart_done)
/*
 * Use bytes from the front of *in and return an event. *ret of MULTIPART_DATA lies in the input or
 * in m, and lives until the next call. -EBADMSG, -E2BIG (part heads, number of parts), -ENOMEM.
 */
int multipart_next(struct multipart *m, struct str *in, struct str *ret);
