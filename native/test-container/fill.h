#pragma once

/*
 * Fills that many MiB with distinct words, then answers connections for ever. At PORT it sends a number that grows by
 * one, which touches next to none of the memory. At PORT + 1 it sends the number of pages that differ from their
 * filling, as a forked child sees them and as the process itself sees them.
 */
int fill(int port, long mebibytes);
