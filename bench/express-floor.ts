/**
 * Child process with a bare Express app on the Postgres of a service, which answers a constant, or a record by its id. Its CPU is the minimum for
 * a request with these libraries.
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.argv[2]!, max: 10 });
const app = express();
app.disable('x-powered-by');
app.get('/constant', (_request, response) => void response.json({ items: [], pagination: { total: 0 } }));
app.get('/customers/:id', (request, response, next) => {
  pool
    .query({ name: 'by_id', text: 'select * from customers where id = $1', values: [request.params.id] })
    .then(({ rows }) => response.json(rows[0]))
    .catch(next);
});
const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
process.on('disconnect', () => process.exit(0));
process.send!({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
