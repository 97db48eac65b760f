/** Which version runs, as package.json says it: at /health, in the metrics and in the OpenAPI document. */
import { readFileSync } from 'node:fs';

export const VERSION: string = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version;

/** The body of every /health. */
export const ALIVE = { status: 'ok', version: VERSION };
