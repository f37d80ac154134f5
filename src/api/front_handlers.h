/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that the front answers by itself. */
#pragma once

struct api_request;

/* The loop turns. */
void front_health(struct api_request *q);
/* Workers answer, too. */
void front_is_ready(struct api_request *q);
/* Counters, for Prometheus. */
void front_metrics(struct api_request *q);
