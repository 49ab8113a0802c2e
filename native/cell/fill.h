#pragma once

/*
 * Fills so many MiB with words of which no two are the same, then answers connections for ever: at PORT with a number that
 * grows by one, which touches next to nothing of them; at PORT + 1 with how many pages are not as they were filled, as it
 * sees them and as a child sees them that is forked for it.
 */
int fill(int port, long mebibytes);
