import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { SMTPServer } from 'smtp-server';
import { MAIL_TASK } from '../../actions/delivery/mail/mail-invoice.ts';
import { createMailer } from '../../actions/delivery/mail/mailer.ts';
import { dispatchBatch } from '../../actions/delivery/webhooks/dispatch-events.ts';
import { mailInvoiceWork } from '../../scheduler/jobs/mail-invoice.ts';
import { startTestApi, type TestApi } from '../support/api.ts';

const NOW = new Date('2026-03-15T12:00:00Z');

describe('invoices by e-mail', () => {
  let api: TestApi;
  let server: SMTPServer;
  let url: string;
  const letters: { to: string[]; text: string }[] = [];
  let refusal: (Error & { responseCode: number }) | null = null;
  /** Taken all the same. */
  let spared: string | null = null;

  before(async () => {
    api = await startTestApi({ now: NOW });
    server = new SMTPServer({
      disabledCommands: ['AUTH', 'STARTTLS'],
      onRcptTo: ({ address }, _session, done) => done(address === spared ? null : refusal),
      onData: (stream, session, done) => {
        text(stream).then((letter) => {
          letters.push({ to: session.envelope.rcptTo.map(({ address }) => address), text: letter });
          done();
        }, done);
      },
    });
    server.listen(0, '127.0.0.1');
    await once(server.server, 'listening');
    url = `smtp://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
  });
  beforeEach(() => letters.splice(0));
  after(async () => {
    await new Promise<void>((done) => server.close(done));
    await api.stop();
  });

  const invoiceOf = async (customer: Record<string, unknown>) => {
    const { body: made } = await api.request('POST', '/customers', { body: { name: 'Acme', ...customer } });
    const body = { customer_id: made.id, currency: 'usd', amount_due: '30', total: '30', subtotal: '30' };
    const { body: invoice } = await api.request('POST', '/invoices', {
      body: { ...body, invoice_status: 'FINALIZED' },
    });
    return invoice;
  };
  /** What is in the queue, done as the worker does it. */
  const deliver = async () => {
    const { postgres } = api.services;
    await dispatchBatch(api.services, { has_targets: true, now: NOW, mails: true });
    const { rows } = await postgres.raw(
      `delete from graphile_worker._private_jobs as job using graphile_worker._private_tasks as task
        where task.id = job.task_id and task.identifier = ? returning job.payload`,
      [MAIL_TASK],
    );
    const mailer = createMailer({ SMTP_URL: url, MAIL_FROM: 'Acme <billing@example.com>' });
    const work = mailInvoiceWork(api.services, { clock: () => NOW, mailer, fonts: null });
    const { signal } = new AbortController();
    const attempt = { attempt: 1, is_last: false, signal, mayGoOn: async () => true };
    const outcomes: (Error | string)[] = [];
    for (const { payload } of rows) outcomes.push(await work.run(payload, attempt).catch((error: Error) => error));
    return outcomes;
  };

  it('a final invoice goes to its customer with its PDF, once', async () => {
    const invoice = await invoiceOf({ external_id: 'acme', email: 'anna@example.com' });
    expect(await deliver()).to.deep.equal(['completed']);
    expect(await deliver()).to.deep.equal([]);
    const [letter] = letters;
    expect(letter?.to).to.deep.equal(['anna@example.com']);
    expect(letter?.text).to.contain(`Subject: Invoice ${invoice.invoice_number}\r\n`);
    expect(letter?.text).to.contain('From: Acme <billing@example.com>').and.contain('Content-Type: application/pdf');
    expect(letter?.text).to.match(/Message-ID: <\w+@farthing>/);
  });

  it('goes once more when somebody asks for it', async () => {
    const invoice = await invoiceOf({ external_id: 'again', email: 'again@example.com' });
    await deliver();
    const asked = await api.request('POST', `/invoices/${invoice.id}/comms/trigger`);
    expect(asked.status, asked.text).to.equal(200);
    await deliver();
    expect(letters.map(({ to }) => to)).to.deep.equal([['again@example.com'], ['again@example.com']]);
  });

  it('does not go again when it is told again that it is final', async () => {
    const invoice = await invoiceOf({ external_id: 'told', email: 'told@example.com' });
    await deliver();
    const event_name = 'invoice.update.finalized';
    const told = await api.request('POST', `/invoices/${invoice.id}/webhook/trigger?event_name=${event_name}`);
    expect(told.status, told.text).to.equal(200);
    expect(await deliver()).to.deep.equal([]);
    expect(letters.map(({ to }) => to)).to.deep.equal([['told@example.com']]);
  });

  it('nobody is written to without an address, where it is switched off, or when it is void by then', async () => {
    await invoiceOf({ external_id: 'no-address' });
    expect(await deliver()).to.deep.equal(['completed']);
    const invoice = await invoiceOf({ external_id: 'voided', email: 'v@example.com' });
    await api.request('POST', `/invoices/${invoice.id}/void`);
    expect(await deliver()).to.deep.equal(['completed']);
    await api.request('PUT', '/settings/invoice_mail_config', { body: { value: { invoices: false } } });
    await invoiceOf({ external_id: 'off', email: 'off@example.com' });
    expect(await deliver()).to.deep.equal(['completed']);
    expect(letters).to.deep.equal([]);
    await api.request('DELETE', '/settings/invoice_mail_config');
  });

  it('copies and an address for answers are those of the setting, and a name cannot add a head', async () => {
    const value = { bcc: ['books@example.com'], reply_to: 'help@example.com' };
    await api.request('PUT', '/settings/invoice_mail_config', { body: { value } });
    const name = 'Evil\r\nBcc: thief@example.com';
    await api.request('PUT', '/settings/invoice_pdf_config', { body: { value: { company: { name } } } });
    await invoiceOf({ external_id: 'copied', email: 'c@example.com' });
    await deliver();
    expect(letters[0]?.to).to.have.members(['c@example.com', 'books@example.com']);
    expect(letters[0]?.text).to.contain('Reply-To: help@example.com');
    expect(letters[0]?.text.split('\r\n\r\n')[0]).not.to.match(/^Bcc:/m);
  });

  it('what the server refuses is not tried again, and what it cannot take now is', async () => {
    refusal = Object.assign(new Error('no such mailbox'), { responseCode: 550 });
    await invoiceOf({ external_id: 'unknown', email: 'unknown@example.com' });
    expect(await deliver()).to.deep.equal(['failed']);
    refusal = Object.assign(new Error('come back later'), { responseCode: 451 });
    await invoiceOf({ external_id: 'later', email: 'later@example.com' });
    const [outcome] = await deliver();
    expect(outcome).to.be.instanceOf(Error);
    refusal = null;
  });

  it('that only a copy of it was taken is not that it was sent', async () => {
    spared = 'archive@example.com';
    refusal = Object.assign(new Error('no such mailbox'), { responseCode: 550 });
    await api.request('PUT', '/settings/invoice_mail_config', { body: { value: { bcc: [spared] } } });
    await invoiceOf({ external_id: 'archived', email: 'gone@example.com' });
    const outcomes = await deliver();
    refusal = null;
    spared = null;
    await api.request('DELETE', '/settings/invoice_mail_config');
    expect([outcomes, letters.map(({ to }) => to)]).to.deep.equal([['failed'], [['archive@example.com']]]);
  });
});
