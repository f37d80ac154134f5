/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls that the front needs; all others fail from then on. */
#pragma once

int front_jail(void);
