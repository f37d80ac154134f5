/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames between the supervisor and its front. The supervisor takes the front for hostile: the
 * front can ask for workers of a few slots, for their end, and for lines of the access log, and
 * nothing else.
 */
#pragma once

enum control_message {
	F_BEGIN = 1, /* supervisor | SECRET, DOMAIN…, ORIGIN…, TLS, LOG, GENERATION, descriptors:
			listeners | once */
	F_START,     /* front | SLOT | start a worker */
	F_KILL,	     /* front | SLOT */
	F_WORKER,    /* supervisor | SLOT, descriptors: socket, eventfd | it runs */
	F_GONE,	     /* supervisor | SLOT | it has ended, or did not start */
	F_KEYS,	     /* supervisor | | the keys have changed */
	F_STOP,	     /* supervisor | | take no more requests, finish, exit */
	F_READY,     /* front | | it accepts */
	F_LOG,	     /* front | a record (api/access_log.h) | if F_BEGIN has LOG */
	F_RETIRE,    /* supervisor | descriptor | another front serves: give it the connections */
	F_HEIR,	     /* supervisor | descriptor | connections come from an older front */
	F_GIVE,	     /* older front to newer, on that descriptor | TRUSTED, descriptor */
	F_TLS,	     /* supervisor | CERT, KEY, TICKET | before F_BEGIN, and when they change */
};

enum control_tag {
	CONTROL_SLOT = 1,
	CONTROL_SECRET,	    /* 32 bytes: tokens are made with it */
	CONTROL_DOMAIN,	    /* text, several: names of this server */
	CONTROL_ORIGIN,	    /* text, several: pages that may use it */
	CONTROL_TLS,	    /* number: bit i is set if clients of listener i speak TLS */
	CONTROL_LOG,	    /* number: 1 if the front tells each request */
	CONTROL_GENERATION, /* number: restarts since the server was started */
	CONTROL_TRUSTED,    /* number: 1 if the client has shown a key */
	CONTROL_CERT,	    /* PEM */
	CONTROL_KEY,	    /* PEM */
	CONTROL_TICKET,	    /* HTTP_TLS_TICKET bytes */
};

enum { CONTROL_LISTENERS = 4, SERVER_SECRET = 32, DOMAIN_SIZE = 254 };
