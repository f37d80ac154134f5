/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands share about sandboxes: the open store, lists of them, their options. */
#pragma once

#include <jansson.h>

#include "base/cleanup.h"
#include "cli/cmd.h"
#include "store/catalog.h"

/* The state directory and the catalog in it. */
struct cli_store {
	struct state state;
	struct catalog *catalog;
	bool open;
	bool deep; /* a stack of layers is to be made shallow in the background, when all is done */
};

int cli_store_open(struct cli_store *s, struct err *e);
/* Without the catalog, which takes most of the time: catalog_open() it when it is needed. */
int cli_store_open_state(struct cli_store *s, struct err *e);
void cli_store_done(struct cli_store *s);
DEFINE_AUTO(struct cli_store, cli_store_done)
DEFINE_AUTO(struct sandbox_row, sandbox_row_done)

struct sandbox_list {
	struct sandbox_row *rows;
	int n;
};

/* Every sandbox, oldest first. */
int sandbox_list_load(struct sandbox_list *l, struct cli_store *s, struct err *e);
/* Append the sandbox that ref names, where the list does not hold it already. */
int sandbox_list_find(struct sandbox_list *l, struct cli_store *s, const char *ref, struct err *e);
void sandbox_list_done(struct sandbox_list *l);
DEFINE_AUTO(struct sandbox_list, sandbox_list_done)

/*
 * Remove what is left of a dead sandbox: files, control groups, row. Waits for its lock up
 * to wait_ms; CONFLICT where somebody holds it longer.
 */
int sandbox_settle(struct cli_store *s, const char *id, int wait_ms, struct err *e);

/* The options that a sandbox was made with, an object; NULL where there are none. Owned. */
json_t *spec_load(const struct sandbox_row *row);
static inline void spec_free(json_t *spec)
{
	json_decref(spec);
}
DEFINE_AUTO_PTR(json_t, spec_free)
/* When its files of the host were as the sandbox sees them; 0: not known. spec may be NULL. */
uint64_t spec_seen_ns(const char *spec);
/* Text at key (NULL: of v itself), also where it was kept as {"b64":…}; NULL: none. Borrowed. */
const char *spec_text(const json_t *v, const char *key);
/* Host path of the first --dir, or NULL. Borrowed. */
const char *spec_first_dir(const json_t *spec);
/* want: k=v, or k for any value. */
bool spec_has_label(const json_t *spec, const char *want);
/* A JSON array of arguments as a shell would read it, allocated; NULL where it is none. */
char *argv_text(const char *json);
