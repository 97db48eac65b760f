/** What is to be stopped when the run of mocha is over. Apart from what it stops, so that a run without stores loads none. */
export const atEnd: (() => Promise<void>)[] = [];
