/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/presets.h"

const struct policy_preset *policy_preset_at(size_t i)
{
	size_t at = 0;

	while (at < i && policy_presets[at].name)
		at++;
	return policy_presets[at].name ? &policy_presets[at] : NULL;
}

const struct policy_preset *policy_preset_find(struct str name)
{
	for (const struct policy_preset *p = policy_presets; p->name; p++)
		if (str_is(name, p->name))
			return p;
	return NULL;
}
