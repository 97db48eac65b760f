/**
 * Customers at Paddle, whose email is unique, and their addresses. A customer has our id in its `custom_data`, an
 * address a digest of its fields.
 */

import { createHash } from 'node:crypto';
import type { PushedCustomer } from '../account.ts';
import { ProviderError } from '../provider-error.ts';
import { cutCharacters } from '../pushed-records.ts';
import type { PaddleClient } from './client.ts';
import { findConflictingCustomer } from './errors.ts';
import { checkCustomerId, isPaddleId, type PaddleAddress, type PaddleCustomer } from './records.ts';

const NAME_MAX = 1_024;
const EMAIL_MAX = 320;
const PAGE = '200';

type BillingAddress = PushedCustomer['address'];

export class PaddleCustomers {
  readonly #client: PaddleClient;

  constructor(client: PaddleClient) {
    this.#client = client;
  }

  /** Creates the customer with its address. A customer with this email that is not ours is refused, not linked. */
  async push(customer: PushedCustomer): Promise<string> {
    const { id } = await this.#createOnce(customer);
    if (customer.address.country !== '') await this.ensureAddress(id, customer.address);
    return id;
  }

  async #createOnce(customer: PushedCustomer): Promise<Pick<PaddleCustomer, 'id'>> {
    const { customer_id, external_id, name, email } = customer;
    if (email === '' || email.length > EMAIL_MAX)
      throw new ProviderError(
        'person',
        `Paddle requires an email of at most ${EMAIL_MAX} characters: set email of ${customer_id}`,
      );
    const custom_data = { farthing_customer_id: customer_id, farthing_external_id: external_id };
    try {
      return await this.#client.create<PaddleCustomer>('customers', {
        email,
        name: cutCharacters(name, NAME_MAX),
        custom_data,
      });
    } catch (error) {
      const id = findConflictingCustomer(error);
      if (id === null) throw error;
      const existing = await this.#client.read<PaddleCustomer>(`customers/${id}`);
      if (existing.custom_data?.['farthing_customer_id'] === customer_id) return existing;
      throw new ProviderError(
        'person',
        `Paddle has a customer with this email already: link ${id}, or change the email`,
        { provider_entity_id: id },
      );
    }
  }

  async has(id: string): Promise<boolean> {
    return isPaddleId(id, 'ctm') && (await this.#client.find<PaddleCustomer>(`customers/${id}`)) !== null;
  }

  /** Returns the id of the address at Paddle, and creates it if there is none. */
  async ensureAddress(customer_id: string, address: BillingAddress): Promise<string> {
    const digest = createDigest(address);
    const known = await this.#listAddresses(customer_id);
    const found = known.find(({ custom_data }) => custom_data?.['farthing_address'] === digest);
    if (found !== undefined) return found.id;
    const filled = (text: string) => (text === '' ? undefined : text);
    const created = await this.#client.create<PaddleAddress>(`customers/${customer_id}/addresses`, {
      country_code: address.country,
      first_line: filled(address.line1),
      second_line: filled(address.line2),
      city: filled(address.city),
      region: filled(address.state),
      postal_code: filled(address.postal_code),
      custom_data: { farthing_address: digest },
    });
    return created.id;
  }

  /** Returns the newest address that is not archived; null if there is none. Ids contain the time of their creation. */
  async findNewestAddress(customer_id: string): Promise<string | null> {
    const ids = (await this.#listAddresses(customer_id)).map(({ id }) => id);
    return ids.toSorted().at(-1) ?? null;
  }

  async #listAddresses(customer_id: string): Promise<PaddleAddress[]> {
    checkCustomerId(customer_id);
    const parameters = { status: 'active', per_page: PAGE };
    return await this.#client.list<PaddleAddress>(`customers/${customer_id}/addresses`, parameters);
  }
}

/** Paddle may reformat the fields, so an address is recognized by the fields as they were sent. */
function createDigest({ line1, line2, city, state, postal_code, country }: BillingAddress): string {
  const content = JSON.stringify([line1, line2, city, state, postal_code, country]);
  return createHash('sha256').update(content).digest('hex');
}
