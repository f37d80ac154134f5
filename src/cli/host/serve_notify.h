/* SPDX-License-Identifier: Apache-2.0 */
/* Tell systemd what the service does (sd_notify(3)). Nothing happens without systemd. */
#pragma once

void serve_notify(const char *text);
