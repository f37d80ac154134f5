/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sys/probe/probe_storage.h"

/* Probe overlays and id-mapped mounts; dir is an empty directory of ours. */
void probe_overlay(struct probe_storage *ret, const char *dir, bool rootful);
