/** Meaning of a status, shown as a colour beside its word: done, due, failed, or a fact. */
export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'plain';
