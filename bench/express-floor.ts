/**
 * Child process with a bare Express app on the Postgres of a service. It answers a constant, answers a record by its id, or creates a customer
 * with the rows that the service writes, in one transaction. Its CPU is the minimum for a request with these libraries.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.argv[2]!, max: 10 });
const app = express();
app.disable('x-powered-by');
app.get('/constant', (_request, response) => void response.json({ items: [], pagination: { total: 0 } }));
app.get('/customers/:id', async (request, response) => {
  const text = 'select * from customers where tenant_id = $1 and environment_id = $2 and id = $3';
  const { tenant_id, environment_id } = owner;
  const { rows } = await pool.query({ name: 'by_id', text, values: [tenant_id, environment_id, request.params.id] });
  response.json(rows[0]);
});
app.post('/customers', express.json(), async (request, response) => {
  const customer = await createCustomer(request.body as { external_id: string; name: string });
  response.status(201).json(customer);
});

const owner = (await pool.query('select tenant_id, environment_id, created_by from customers limit 1')).rows[0] as {
  tenant_id: string;
  environment_id: string;
  created_by: string;
};

/** Writes the customer, its entry in the audit log and its system event, as POST /v1/customers does. */
async function createCustomer(body: { external_id: string; name: string }): Promise<object> {
  const { tenant_id, environment_id, created_by: user_id } = owner;
  const scope = { tenant_id, environment_id };
  const now = new Date().toISOString();
  const stamp = { status: 'published', created_at: now, updated_at: now, created_by: user_id, updated_by: user_id };
  const address = {
    address_line1: '',
    address_line2: '',
    address_city: '',
    address_state: '',
    address_postal_code: '',
  };
  const other = { address_country: '', email: '', contact: '', timezone: 'UTC', tax_exempt: 'none' };
  const unset = { tax_ids: null, metadata: null, parent_customer_id: null };
  const record = { id: `cust_${randomUUID()}`, ...scope, ...body, ...address, ...other, ...unset, ...stamp };
  const subject = { entity_type: 'customer', entity_id: record.id };
  const client = await pool.connect();
  try {
    await client.query('begin');
    const { rows } = await insert(client, 'customers', record, ' returning *');
    const customer = rows[0] as object;
    await insert(client, 'audit_entries', {
      ...scope,
      ...subject,
      id: `audit_${randomUUID()}`,
      action: 'created',
      user_id,
      request_id: `req_${randomUUID()}`,
      after: JSON.stringify(customer),
      created_at: now,
    });
    const id = `sys_event_${randomUUID()}`;
    const payload = JSON.stringify({ event_type: 'customer.created', id, created_at: now, customer });
    await insert(client, 'system_events', {
      ...scope,
      ...subject,
      ...stamp,
      id,
      event_name: 'customer.created',
      payload,
      user_id,
    });
    await client.query('commit');
    return customer;
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
}

function insert(client: pg.PoolClient, table: string, row: object, returning = ''): Promise<pg.QueryResult> {
  const names = Object.keys(row);
  const text = `insert into ${table} (${names.join(', ')}) values (${names.map((_, index) => `$${index + 1}`).join(', ')})${returning}`;
  return client.query({ name: table, text, values: Object.values(row) });
}

const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
process.on('disconnect', () => process.exit(0));
process.send!({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
