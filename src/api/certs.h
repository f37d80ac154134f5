/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's certificate and private key, as files. The supervisor reads and checks them: the
 * front has no files.
 */
#pragma once

#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

/* What tells whether a file has changed. */
struct certs_stamp {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

struct certs {
	const char *cert_path, *key_path; /* borrowed; NULL: no TLS */
	struct buf chain, key;		  /* PEM, as read last */
	struct certs_stamp stamps[2];	  /* of the last attempt to read, also a failed one */
};

enum { CERTS_MOST = 256 * 1024 };

/*
 * Read both files and check that they fit together. On failure c keeps what it had. Refuses a key
 * file that other users can read.
 */
int certs_load(struct certs *c, struct err *e);
/* True if a file is another one than at the last certs_load(). */
bool certs_changed(const struct certs *c);
/* Whether the certificate is valid for this host name. */
bool certs_cover(const struct certs *c, const char *name);
void certs_done(struct certs *c);
