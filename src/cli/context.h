/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the context of operations (ops/cay.h) for the command line, with settings from the
 * environment.
 */
#pragma once

#include "cli/cmd.h"
#include "ops/cay.h"

/* Does not open the catalog: call cay_catalog() when it is needed. */
int cli_open_state(struct cay *c, struct err *e);
int cli_open(struct cay *c, struct err *e);
/* Close the context and start the background work that operations requested. */
void cli_done(struct cay *c);
DEFINE_AUTO(struct cay, cli_done)

/* The same, but close only the catalog, which a long command must not hold. */
void cli_let_go(struct cay *c);

/* Print the warnings of an operation on stderr. */
void cli_print_warnings(const struct warnings *w);
