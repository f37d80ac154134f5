/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames between the supervisor and its front. The supervisor takes the front for hostile: the
 * front can ask for workers of a few slots, and for their end, and nothing else.
 */
#pragma once

enum control_message {
	F_BEGIN = 1, /* supervisor | SECRET, DOMAIN…, ORIGIN…, descriptors: listeners | first */
	F_START,     /* front | SLOT | start a worker */
	F_KILL,	     /* front | SLOT */
	F_WORKER,    /* supervisor | SLOT, descriptors: socket, eventfd | it runs */
	F_GONE,	     /* supervisor | SLOT | it has ended, or did not start */
	F_KEYS,	     /* supervisor | | the keys have changed */
	F_STOP,	     /* supervisor | | take no more requests, finish, exit */
	F_READY,     /* front | | it accepts */
};

enum control_tag {
	CONTROL_SLOT = 1,
	CONTROL_SECRET, /* 32 bytes: tokens are made with it */
	CONTROL_DOMAIN, /* text, several: names of this server */
	CONTROL_ORIGIN, /* text, several: pages that may use it */
};

enum { CONTROL_LISTENERS = 4, SERVER_SECRET = 32 };
