/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a sandbox whose warden could not write it to the trace, because it was killed or the
 * machine crashed. The process that finds the sandbox dead writes a note beside the trace: only the
 * warden may append to the hash chain.
 */
#pragma once

#include <jansson.h>

#include "store/state.h"

/* Write the note for a dead sandbox that has none. Its lock is held. */
void end_note_write(const struct state *s, const char *id);
/* The current content of such a note; NULL if the sandbox has no directory. */
json_t *end_note_make(const struct state *s, const char *id);
/* The note of a dead or ended sandbox: an object with time, cause, reason and log; or NULL. */
json_t *end_note_read(const struct state *s, const char *id);
