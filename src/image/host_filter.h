/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which of the host's files a sandbox sees. /etc is an allow-list, without files whose mode
 * is often too wide, the machine's identity, and files that we write ourselves. /opt and /usr/local
 * are shown except what looks like a credential. Pure: takes names and bytes, returns the reason to
 * leave a file out, or NULL.
 */
#pragma once

#include <stdbool.h>

#include "base/str.h"

/* path: relative to /, such as `etc/ssh/ssh_host_rsa_key`. */
const char *host_filter_path(const char *path);
/* path: relative to /, such as `opt/app/.env`. */
const char *host_filter_local(const char *path);
/* True if we must check the content of this file in /opt or /usr/local. */
bool host_filter_reads(const char *path);
/* True if the name suggests a credential, but not clearly enough to hide the file. */
bool host_filter_suspect(const char *path);
/* Finds private keys, and addresses or settings that contain a password. */
const char *host_filter_content(const char *path, struct str content);
