/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/probe/probe_cpu.h"

#include <dirent.h>
#include <stdio.h>

#define VULNERABILITIES "/sys/devices/system/cpu/vulnerabilities"

/*
 * Unmitigated: "Vulnerable: no microcode", "KVM: Vulnerable". Not: "Mitigation: ...; SMT
 * vulnerable".
 */
bool probe_cpu_is_open(const char *said)
{
	return strncmp(said, "Vulnerable", 10) == 0 || strncmp(said, "KVM: Vulnerable", 15) == 0;
}

void probe_cpu_flags(struct str cpuinfo, struct probe_cpu *ret)
{
	struct str line;

	while (probe_line(&cpuinfo, &line)) {
		if (!str_starts(line, STR("flags")))
			continue;
		ret->virtual_ = probe_has_word(line, " \t", "hypervisor");
		ret->vmx_svm =
			probe_has_word(line, " \t", "vmx") || probe_has_word(line, " \t", "svm");
		return;
	}
}

static void add_word(char *list, size_t size, const char *word)
{
	size_t n = strlen(list);

	(void)snprintf(list + n, size - n, "%s%s", n ? " " : "", word);
}

static int by_name(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static void read_vulnerabilities(struct probe_cpu *ret)
{
	struct dirent **names = NULL;
	int n = scandir(VULNERABILITIES, &names, by_name, alphasort);

	ret->known = n > 0;
	for (int i = 0; i < n; i++) {
		char path[512], said[128];

		(void)snprintf(path, sizeof path, VULNERABILITIES "/%s", names[i]->d_name);
		probe_text(path, said, sizeof said);
		if (probe_cpu_is_open(said))
			add_word(ret->vulnerable, sizeof ret->vulnerable, names[i]->d_name);
		free(names[i]);
	}
	free(names);
}

void probe_cpu(struct probe_cpu *ret)
{
	auto_done(buf_done) struct buf info = BUF_INIT(PROBE_TEXT_MAX);

	*ret = (struct probe_cpu){ .smt = probe_number("/sys/devices/system/cpu/smt/active") };
	read_vulnerabilities(ret);
	if (probe_file("/proc/cpuinfo", &info))
		probe_cpu_flags(buf_str(&info), ret);
}
