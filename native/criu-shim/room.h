#pragma once

/* Call it for each file for pages that is open for writing, before the first write. */
void room_for(int directory, const char *name, int fd);
