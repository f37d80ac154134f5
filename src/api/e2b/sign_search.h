/* SPDX-License-Identifier: Apache-2.0 */
/* Signed URLs that name no sandbox: the one whose token made the signature is searched. */
#pragma once

#include "api/front.h"

/*
 * False: the request is no such URL. True: `found` comes later with its id in q->id, or it is
 * refused.
 */
bool sign_search(struct api_request *q, void (*found)(struct api_request *q));
