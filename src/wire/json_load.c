/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json_load.h"

/* Counts brackets outside of strings; jansson finds all other errors. */
static bool too_deep(struct str text)
{
	bool quoted = false;
	int depth = 0;

	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (quoted) {
			if (c == '\\')
				i++;
			else if (c == '"')
				quoted = false;
		} else if (c == '"') {
			quoted = true;
		} else if (c == '[' || c == '{') {
			if (++depth > JSON_LOAD_DEPTH)
				return true;
		} else if (c == ']' || c == '}') {
			depth--;
		}
	}
	return false;
}

json_t *json_load_object(struct str text)
{
	json_t *v;

	if (!text.n || too_deep(text))
		return NULL;
	v = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
	if (json_is_object(v))
		return v;
	json_decref(v);
	return NULL;
}
