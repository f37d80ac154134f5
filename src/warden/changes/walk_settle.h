/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

struct warden;

/* Answer the clients that wait for walks, if those walks are done. */
void settle_answer(struct warden *w);
