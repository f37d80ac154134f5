/* SPDX-License-Identifier: Apache-2.0 */
/* The request to build a sandbox: what is accepted is complete and within its tables. */
#include <string.h>

#include "fuzz.h"
#include "sys/ns/userns.h"
#include "warden/warden.h"

static void check_mount(const struct cell_mount *m)
{
	FUZZ_CHECK(m->kind == MOUNT_OVERLAY || m->kind == MOUNT_RO);
	FUZZ_CHECK(m->dest && m->dest[0] == '/' && m->nlower >= 1 && m->nlower <= CELL_LOWERS);
	for (int i = 0; i < m->nlower; i++)
		FUZZ_CHECK(m->lower[i] != NULL);
}

static void check(const struct warden *w)
{
	FUZZ_CHECK(w->spec.id && w->spec.hostname && w->spec.dir && w->program);
	FUZZ_CHECK(w->spec.nmounts >= 1 && w->spec.nmounts <= CELL_MOUNTS);
	for (int i = 0; i < w->spec.nmounts; i++)
		check_mount(&w->spec.mounts[i]);
	FUZZ_CHECK(w->defaults.nenv <= LIMIT_ENV && w->ntexts <= (int)ARRAY_LEN(w->texts));
	FUZZ_CHECK(!w->rootful || w->spec.uid_base >= USERNS_IDS);
	FUZZ_CHECK(!w->rootful || w->spec.uid_base <= UINT32_MAX - USERNS_IDS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct warden w;
	struct err e = { 0 };

	memset(&w, 0, sizeof w);
	if (build_parse(&w, (struct str){ (const char *)data, size }, &e) == 0)
		check(&w);
	else
		FUZZ_CHECK(e.kind == ERR_INVALID && e.msg[0]);
	warden_free_spec(&w);
	return 0;
}
