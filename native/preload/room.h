#pragma once

/* To be called for each file for pages that was opened to be written, before anything is written to it. */
void room_for(int directory, const char *name, int fd);
