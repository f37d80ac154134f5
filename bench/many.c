/* SPDX-License-Identifier: Apache-2.0 */
/* many N CMD [ARG]...: fork, exec and wait, N times. A workload of short processes. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int n = argc > 2 ? (int)strtol(argv[1], NULL, 10) : 0;

	if (n < 1) {
		fprintf(stderr, "usage: many N CMD [ARG]...\n");
		return 2;
	}
	for (int i = 0; i < n; i++) {
		int status = 0;
		pid_t pid = fork();

		if (pid == 0) {
			(void)execv(argv[2], argv + 2);
			_exit(127);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			return 1;
	}
	return 0;
}
