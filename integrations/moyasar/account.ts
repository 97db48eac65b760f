/** Account at Moyasar. It has no customers, and its invoices have no lines: one amount, whose description names ours. */
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
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
import { fromSmallestUnits } from './amounts.ts';
import type { MoyasarClient } from './client.ts';
import { cancelInvoice, createInvoiceOnce, listUsable, type NewInvoice } from './create-invoice.ts';
import { MoyasarPayments } from './payments.ts';
import type { MoyasarInvoice } from './records.ts';
import { findInvoiceStatus, toReportedPayment } from './states.ts';

const REFERENCE = 'farthing_invoice_copy';

export class MoyasarAccount implements ProviderAccount {
  readonly payments: AccountPayments;
  readonly #client: MoyasarClient;

  constructor(client: MoyasarClient) {
    this.#client = client;
    this.payments = new MoyasarPayments(client);
  }

  /** Checks the key by a list request. Moyasar does not say to which account a key belongs, so the id is unknown. */
  async identify(): Promise<AccountIdentity> {
    await this.#client.checkCredentials();
    return { provider_account_id: null, name: null };
  }

  async pushInvoice(invoice: PushedInvoice): Promise<ProviderRecord> {
    return toRecord(await createInvoiceOnce(this.#client, toNewInvoice(invoice)));
  }

  async findInvoice({ invoice_id }: SearchedInvoice): Promise<ProviderRecord | null> {
    const [found] = await listUsable(this.#client, { reference_name: REFERENCE, reference: invoice_id });
    return found === undefined ? null : toRecord(found);
  }

  async voidInvoice(provider_entity_id: string): Promise<void> {
    const invoice = await this.#client.findInvoice(provider_entity_id);
    const status = invoice === null ? 'void' : findInvoiceStatus(invoice);
    if (status === 'void') return;
    if (status === 'paid')
      throw new ProviderError(
        'person',
        `the invoice ${provider_entity_id} is ${invoice!.status} at Moyasar, so it cannot be voided`,
      );
    await cancelInvoice(this.#client, provider_entity_id);
  }

  async pullInvoice(provider_entity_id: string): Promise<ProviderInvoice | null> {
    const invoice = await this.#client.findInvoice(provider_entity_id);
    if (invoice === null) return null;
    const { amount, currency, payments } = invoice;
    return {
      ...toRecord(invoice),
      invoice_status: findInvoiceStatus(invoice),
      total: fromSmallestUnits(amount, currency),
      currency: currency.toLowerCase(),
      payments: (payments ?? []).map(toReportedPayment),
    };
  }

  async listConcernedInvoices({ kind, provider_entity_id }: ProviderEventSubject): Promise<readonly string[]> {
    if (kind === 'invoice') return [provider_entity_id];
    const payment = await this.#client.findPayment(provider_entity_id);
    return payment?.invoice_id ? [payment.invoice_id] : [];
  }
}

function toRecord({ id, url }: MoyasarInvoice): ProviderRecord {
  return { provider_entity_id: id, url };
}

/** Throws if the lines do not add up to the total of the invoice. */
function toNewInvoice({ invoice_id, invoice_number, lines, total, currency }: PushedInvoice): NewInvoice {
  const sum = sumDecimals(lines.map(({ amount }) => new Decimal(amount)));
  if (!sum.eq(total))
    throw new ProviderError('person', `the lines add up to ${sum.toFixed()} ${currency}, the total is ${total}`);
  const listed = lines.map(({ description, amount }) => `${description}: ${amount}`).join(', ');
  return {
    ...{ reference_name: REFERENCE, reference: invoice_id, record_id: invoice_id, amount: total, currency },
    description: `Invoice ${invoice_number}: ${listed}`,
    metadata: { farthing_invoice_id: invoice_id, farthing_invoice_number: invoice_number },
  };
}
