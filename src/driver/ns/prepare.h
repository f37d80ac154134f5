/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "driver/driver.h"

/*
 * Make the upper and work directories of a new sandbox, and what every sandbox has of its
 * own in them: mount points, host name, hosts, machine id. They lie in a directory that no
 * sandbox has written to yet, so plain names are safe here.
 */
int prepare_uppers(const struct cell_spec *s, struct err *e);
