/* SPDX-License-Identifier: Apache-2.0 */
/* The context of operations (ops/cay.h) as the command line opens it: with its environment. */
#pragma once

#include "cli/cmd.h"
#include "ops/cay.h"

/* Without the catalog: cay_catalog() it when it is needed. */
int cli_open_state(struct cay *c, struct err *e);
int cli_open(struct cay *c, struct err *e);
/* Close it, and start what operations want done in the background. */
void cli_done(struct cay *c);
DEFINE_AUTO(struct cay, cli_done)

/* The same but for the connection: a command that lasts keeps nobody from the catalog. */
void cli_let_go(struct cay *c);

/* What an operation warns of, on stderr. */
void cli_print_warnings(const struct warnings *w);
