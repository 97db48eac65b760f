/**
 * Account of a company at Whop. Its members cannot be created by the API: an invoice is addressed by name and email, and Whop finds or makes
 * the member when it is paid.
 */
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type {
  AccountIdentity,
  ProviderAccount,
  ProviderInvoice,
  ProviderRecord,
  PushedInvoice,
  SearchedInvoice,
} from '../account.ts';
import type { AccountPayments } from '../account-payments.ts';
import { ProviderError } from '../provider-error.ts';
import type { WhopAccess, WhopClient } from './client.ts';
import { CLOCK_SLACK_MS, computeTotal, createInvoiceOnce, listUsable, voidInvoice } from './create-invoice.ts';
import { WhopPayments } from './payments.ts';
import type { WhopCompany, WhopInvoice, WhopPayment } from './records.ts';
import { findInvoiceStatus, isPaid, toReportedPayment } from './states.ts';
import { isPlanOfInvoice } from './texts.ts';

export class WhopAccount implements ProviderAccount {
  readonly payments: AccountPayments;
  readonly #client: WhopClient;
  readonly #access: WhopAccess;

  constructor(client: WhopClient, access: WhopAccess) {
    this.#client = client;
    this.#access = access;
    this.payments = new WhopPayments(client, access);
  }

  async identify(): Promise<AccountIdentity> {
    const { company_id } = this.#access;
    const company = await this.#client.find<WhopCompany>('companies', company_id);
    if (company === null)
      throw new ProviderError('person', `the key cannot read the company ${company_id} at Whop`, {
        is_unauthorized: true,
      });
    return { provider_account_id: company.id, name: company.title ?? null };
  }

  async pushInvoice(invoice: PushedInvoice): Promise<ProviderRecord> {
    return toRecord(await createInvoiceOnce({ client: this.#client, access: this.#access }, invoice));
  }

  async findInvoice(invoice: SearchedInvoice): Promise<ProviderRecord | null> {
    const [found] = await listUsable({ client: this.#client, access: this.#access }, invoice);
    return found === undefined ? null : toRecord(found);
  }

  async voidInvoice(provider_entity_id: string): Promise<void> {
    const invoice = await this.#client.find<WhopInvoice>('invoices', provider_entity_id);
    const status = invoice === null ? 'void' : findInvoiceStatus(invoice);
    if (status === 'void') return;
    if (status === 'paid')
      throw new ProviderError('person', `the invoice ${provider_entity_id} is paid at Whop, so it cannot be voided`);
    if (status === 'draft') return await this.#client.remove(`invoices/${provider_entity_id}`);
    await voidInvoice(this.#client, provider_entity_id);
  }

  async pullInvoice(provider_entity_id: string): Promise<ProviderInvoice | null> {
    const invoice = await this.#client.find<WhopInvoice>('invoices', provider_entity_id);
    if (invoice === null) return null;
    const payments = await this.#listPayments(invoice);
    return {
      ...toRecord(invoice),
      provider_customer_id: payments.find((payment) => isPaid(payment) && payment.member)?.member?.id ?? null,
      invoice_status: findInvoiceStatus(invoice),
      total: computeTotal(invoice).toFixed(),
      currency: invoice.current_plan.currency.toLowerCase(),
      payments: payments.map(toReportedPayment),
    };
  }

  /** Lists the payments of the invoice, which has a plan of its own. Those with money are read alone, because a list has no refunds. */
  async #listPayments({ current_plan }: WhopInvoice): Promise<WhopPayment[]> {
    const found: WhopPayment[] = [];
    const parameters = { company_id: this.#access.company_id, 'plan_ids[]': current_plan.id };
    for await (const listed of this.#client.list<WhopPayment>('payments', parameters)) {
      if (listed.plan?.id !== current_plan.id) continue;
      found.push(isPaid(listed) ? ((await this.#client.find<WhopPayment>('payments', listed.id)) ?? listed) : listed);
    }
    return found;
  }

  async listConcernedInvoices({ kind, provider_entity_id }: ProviderEventSubject): Promise<readonly string[]> {
    if (kind === 'invoice') return [provider_entity_id];
    // A page is no payment yet, and pays no copy.
    if (kind !== 'payment' || !provider_entity_id.startsWith('pay_')) return [];
    const payment = await this.#client.find<WhopPayment>('payments', provider_entity_id);
    const invoice_id = payment === null ? null : await this.#findPaidInvoice(payment);
    return invoice_id === null ? [] : [invoice_id];
  }

  /** Finds the invoice by its plan: a payment does not name its invoice. */
  async #findPaidInvoice({ plan, product, created_at }: WhopPayment): Promise<string | null> {
    if (!plan || !isPlanOfInvoice(plan)) return null;
    const parameters = {
      company_id: this.#access.company_id,
      created_before: new Date(Date.parse(created_at) + CLOCK_SLACK_MS).toISOString(),
      ...{ direction: 'desc', order: 'created_at' },
      ...(product ? { 'product_ids[]': product.id } : {}),
    };
    for await (const { id, current_plan } of this.#client.list<WhopInvoice>('invoices', parameters))
      if (current_plan.id === plan.id) return id;
    return null;
  }
}

/** Whop documents no address for the page of an invoice, only the token of its data. */
function toRecord({ id }: WhopInvoice): ProviderRecord {
  return { provider_entity_id: id, url: null };
}
