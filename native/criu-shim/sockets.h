/* Asks CRIU's questions about TCP sockets in advance. */
#pragma once

#include "work.h"

/* Call it before the stop: prepares the thread. If any of this fails CRIU asks by itself. */
void sockets_prepare(void);

/* Call it when all processes have stopped. */
void sockets_ask(void);

/* Returns the number of CRIU's questions that were answered in advance. */
int sockets_were_asked(void);
