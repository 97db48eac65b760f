/** The running version, from package.json: for /health, the metrics and the OpenAPI document. */
import { readFileSync } from 'node:fs';

export const VERSION: string = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version;

/** The body of every /health. */
export const ALIVE = { status: 'ok', version: VERSION };
