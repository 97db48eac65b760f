/**
 * Records with our id in the unique property `farthing_id`. HubSpot has no idempotency keys. It refuses a second record
 * with one id, so a repeated creation finds the first record.
 */
import { isRefused } from '../provider-error.ts';
import type { HubSpotClient } from './client.ts';
import { type HubSpotInput, type HubSpotRecord, ID_PROPERTY } from './records.ts';

type OwnType = 'contact' | 'company' | 'deal' | 'invoice' | 'payment';
type CreatedRecord = {
  readonly record: HubSpotRecord;
  /** Whether this call created the record; false if an earlier attempt did. */
  readonly is_new: boolean;
};

export class OwnRecords {
  readonly #client: HubSpotClient;

  constructor(client: HubSpotClient) {
    this.#client = client;
  }

  async find(type: OwnType, our_id: string): Promise<HubSpotRecord | null> {
    try {
      return await this.#client.read(type, our_id, { by: ID_PROPERTY });
    } catch (error) {
      // HubSpot refuses the search before the first record is created, because the account has no such property yet.
      if (isRefused(error) && !(await this.#client.hasProperty(type, ID_PROPERTY))) return null;
      throw error;
    }
  }

  /** Creates the record, and the property if the account does not have it yet. */
  async create(type: OwnType, our_id: string, { properties, associations }: HubSpotInput): Promise<CreatedRecord> {
    const body = { properties: { ...properties, [ID_PROPERTY]: our_id }, associations };
    try {
      return { record: await this.#client.create(type, body), is_new: true };
    } catch (error) {
      if (!isRefused(error)) throw error;
      const record = await this.find(type, our_id);
      if (record !== null) return { record, is_new: false };
      const isUnnamed = error.message.includes(ID_PROPERTY);
      if (!isUnnamed || !(await this.#client.createIdProperty(type, ID_PROPERTY))) throw error;
      return { record: await this.#client.create(type, body), is_new: true };
    }
  }

  /** Removes our id from the record, so that another record can have it. */
  async release(type: OwnType, id: string): Promise<void> {
    await this.#client.update(type, id, { [ID_PROPERTY]: '' });
  }
}
