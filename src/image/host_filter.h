/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of the host's /etc never goes into a layer although every user of the host may read
 * it: secrets that often have too wide a mode, the identity of the machine, and files that
 * we write ourselves. Pure: names and bytes in, a reason or NULL out.
 */
#pragma once

#include "base/str.h"

/* path: relative to /, such as `etc/ssh/ssh_host_rsa_key`. */
const char *host_filter_path(const char *path);
/* Private keys, and addresses or settings that carry a password. */
const char *host_filter_content(const char *path, struct str content);
