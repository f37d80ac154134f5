/* SPDX-License-Identifier: Apache-2.0 */
#include "api/server_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hmac.h"
#include "base/io.h"
#include "base/random.h"

static const char key_name[] = "server.key";

/* By link(2), so that of two servers that start at once both have the same key. */
static int make_key(const struct state *s, struct err *e)
{
	uint8_t secret[SERVER_SECRET];
	char temp[48];
	auto_close int fd = FD_NONE;
	int r = random_bytes(secret, sizeof secret);

	(void)snprintf(temp, sizeof temp, "server.key.%d", (int)getpid());
	if (r == 0) {
		fd = openat(s->fd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
			    0600);
		r = fd < 0 ? -errno : io_write_all(fd, secret, sizeof secret);
	}
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && linkat(s->fd, temp, s->fd, key_name, 0) < 0 && errno != EEXIST)
		r = -errno;
	(void)unlinkat(s->fd, temp, 0);
	return r < 0 ? err_sys(e, -r, "make '%s/%s'", s->dir, key_name) : 0;
}

int server_key_load(const struct state *s, uint8_t ret[SERVER_SECRET], struct err *e)
{
	auto_close int fd = openat(s->fd, key_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int r;

	if (fd < 0 && errno == ENOENT) {
		if (make_key(s, e) < 0)
			return -1;
		fd = openat(s->fd, key_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	}
	if (fd < 0)
		return err_sys(e, errno, "open '%s/%s'", s->dir, key_name);
	r = io_read_exact(fd, ret, SERVER_SECRET);
	return r < 0 ? err_sys(e, -r, "read '%s/%s'", s->dir, key_name) : 0;
}

void server_token(const uint8_t secret[SERVER_SECRET], const char *use, const char *id,
		  char ret[TOKEN_SIZE])
{
	char text[96], hex[SHA256_HEX];
	uint8_t mac[SHA256_SIZE];
	/* Use and id are separated by NUL: no other pair gives the same text. */
	int n = snprintf(text, sizeof text, "%s%c%s", use, '\0', id);

	hmac_sha256((struct str){ (const char *)secret, SERVER_SECRET },
		    (struct str){ text, n > 0 && (size_t)n < sizeof text ? (size_t)n : 0 }, mac);
	sha256_hex(mac, hex);
	(void)str_copy(ret, TOKEN_SIZE, (struct str){ hex, TOKEN_SIZE - 1 });
}
