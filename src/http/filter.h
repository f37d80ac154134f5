/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies between a connection and its socket: nothing (plain), or TLS. A filter belongs to one
 * connection. All calls are non-blocking.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct http_filter;

struct http_filter_ops {
	/* 0 when the handshake is over, -EAGAIN, or -errno. NULL: there is none. */
	int (*shake)(struct http_filter *f, int fd);
	/* Bytes; 0 at the end; -EAGAIN; -errno. */
	ssize_t (*read)(struct http_filter *f, int fd, void *p, size_t n);
	ssize_t (*write)(struct http_filter *f, int fd, const void *p, size_t n);
	/* Bytes that were received and decoded but not read: epoll does not tell of them. */
	bool (*pending)(const struct http_filter *f);
	/* Nothing more will be written: say so to the peer. */
	void (*shut)(struct http_filter *f, int fd);
	void (*free)(struct http_filter *f);
};

struct http_filter {
	const struct http_filter_ops *ops;
	/* After -EAGAIN: the call waits for EPOLLOUT although it reads, or the other way round. */
	bool read_wants_write, write_wants_read;
};

/* Makes the filter of a new connection: a certificate store, or NULL for plain. */
struct http_filter_maker {
	/* NULL if memory ran out. */
	struct http_filter *(*make)(const struct http_filter_maker *m);
};

/* One for all plain connections: it has no state. */
struct http_filter *http_filter_plain(void);
