/** What a status means, beside its word: done, due, failed, or a fact. */
export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'plain';
