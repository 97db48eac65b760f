/** Writes the OpenAPI document into a file, from which the types of the console are made (`npm run check`). */
import { writeFileSync } from 'node:fs';
import { openApiDocument } from './http/openapi.ts';
import { routes } from './resources.ts';

const [, , file] = process.argv;
if (!file) throw new Error('name the file that the document is written to');
writeFileSync(file, JSON.stringify(openApiDocument(routes)));
