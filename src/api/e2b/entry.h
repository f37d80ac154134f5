/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of directories as clients read them. */
#pragma once

#include "wire/file_entry.h"
#include "wire/json_write.h"

/* The next value of j. */
void entry_put(struct json *j, const struct file_entry *f);
/* {"metadata":{…}}, as members of an open object; nothing where there is none. lines: K=V. */
void entry_put_metadata(struct json *j, struct str lines);
