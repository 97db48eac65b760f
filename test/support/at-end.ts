/**
 * Functions that run after mocha's last test. They are in a module without other imports, so that a run without stores
 * does not load the code of the stores.
 */
export const atEnd: (() => Promise<void>)[] = [];
