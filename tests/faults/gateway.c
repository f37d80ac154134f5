/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cay-gateway, of which the front was taken over by whoever connects to a.web.test. The port says
 * what it does then:
 *
 *   7100 + i  ask the dialer for evil[i] instead
 *   7200      dial without the dialer, and end with a code that says how that went
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gateway/ask.h"
#include "sys/filter/seccomp_few.h"
#include "wire/dial_ask.h"

enum { FIRST = 7100, DIRECT = 7200 };
enum { NO_WAY_OUT = 40, DIALLED = 41, NO_SOCKET = 42, OTHER = 43 };

static const struct dial_ask evil[] = {
	{ .name = "other.test", .port = 80 },
	{ .name = "a.web.test", .port = 22 },
	{ .addr = { 4, { 45, 90, 0, 10 } }, .port = 80 },
	{ .addr = { 4, { 127, 0, 0, 1 } }, .port = 80 },
	{ .addr = { 4, { 169, 254, 169, 254 } }, .port = 80 },
	{ .addr = { 4, { 45, 90, 0, 1 } }, .port = 80 },
	{ .name = "localhost", .port = 80 },
	{ .name = "a.web.test", .addr = { 4, { 169, 254, 169, 254 } }, .port = 7100 },
};

void __real_dial_ask_write(const struct dial_ask *a, uint8_t out[DIAL_ASK_SIZE]);
void __wrap_dial_ask_write(const struct dial_ask *a, uint8_t out[DIAL_ASK_SIZE]);
int __real_ask_send(struct gateway *g, struct dial_ask *a, uint32_t *ret_serial);
int __wrap_ask_send(struct gateway *g, struct dial_ask *a, uint32_t *ret_serial);

static bool is_ours(const struct dial_ask *a)
{
	return a->kind == DIAL_ASK_DIAL && strcmp(a->name, "a.web.test") == 0;
}

void __wrap_dial_ask_write(const struct dial_ask *a, uint8_t out[DIAL_ASK_SIZE])
{
	struct dial_ask other = *a;

	if (is_ours(a) && a->port >= FIRST && a->port < FIRST + (int)ARRAY_LEN(evil)) {
		other = evil[a->port - FIRST];
		other.kind = a->kind;
		other.slot = a->slot;
		other.serial = a->serial;
	}
	__real_dial_ask_write(&other, out);
}

static int dial_directly(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(7000) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		return errno == EPERM ? NO_SOCKET : OTHER;
	sa.sin_addr.s_addr = htonl(0x2d5a000a); /* 45.90.0.10 */
	if (connect(fd, (void *)&sa, sizeof sa) == 0)
		return DIALLED;
	return errno == ENETUNREACH ? NO_WAY_OUT : OTHER;
}

int __wrap_ask_send(struct gateway *g, struct dial_ask *a, uint32_t *ret_serial)
{
	if (is_ours(a) && a->port == DIRECT)
		_exit(dial_directly());
	return __real_ask_send(g, a, ret_serial);
}

#ifdef UNFILTERED
int __wrap_seccomp_few_install(const struct seccomp_few *f);

int __wrap_seccomp_few_install(const struct seccomp_few *f)
{
	(void)f;
	return 0;
}
#endif
