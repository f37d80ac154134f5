/* SPDX-License-Identifier: Apache-2.0 */
/* The drivers of this build, by name. */
#include <string.h>

#include "driver/driver.h"
#include "driver/ns/ns.h"

const struct driver *driver_find(const char *name)
{
	static const struct driver *const all[] = { &ns_driver };

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}
