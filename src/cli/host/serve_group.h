/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control group of a server's sandboxes, if it has one of its own: the unit
 * cay-sandboxes.service. The file "group" in the state directory has its path.
 */
#pragma once

/* Move this process into that group, if there is one. Its children follow. */
void serve_group_join(const char *state_dir);
