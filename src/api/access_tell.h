/* SPDX-License-Identifier: Apache-2.0 */
/* The front's part of the access log. */
#pragma once

struct api_request;

/* A request of this route has ended: tell the supervisor, unless there is no log. */
void access_tell(const struct api_request *q, const char *route);
