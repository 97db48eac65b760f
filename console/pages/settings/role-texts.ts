/** Names of the roles. A role that the console does not know has its name from the API. */
import { defineTexts } from '../../texts/texts.ts';

export const ROLE_TEXTS = defineTexts(
  {
    super_admin: 'Super admin',
    super_admin_hint: 'Everything, including users and their keys.',
    all_writer: 'Writer',
    all_writer_hint: 'Reads and writes every record.',
    all_reader: 'Reader',
    all_reader_hint: 'Reads every record and writes none.',
    event_ingestor: 'Event ingestor',
    event_ingestor_hint: 'Sends events.',
    reserver: 'Reserver',
    reserver_hint: 'Reserves usage for customers, and commits or releases it.',
    event_reader: 'Event reader',
    event_reader_hint: 'Reads events.',
  },
  {
    de: {
      super_admin: 'Super-Admin',
      super_admin_hint: 'Alles, auch Benutzer und ihre Schlüssel.',
      all_writer: 'Schreibzugriff',
      all_writer_hint: 'Liest und ändert alle Datensätze.',
      all_reader: 'Lesezugriff',
      all_reader_hint: 'Liest alle Datensätze und ändert keinen.',
      event_ingestor: 'Ereignisse senden',
      event_ingestor_hint: 'Sendet Ereignisse.',
      reserver: 'Reservieren',
      reserver_hint: 'Reserviert Nutzung für Kunden und bucht sie oder gibt sie frei.',
      event_reader: 'Ereignisse lesen',
      event_reader_hint: 'Liest Ereignisse.',
    },
  },
);

type NamedRole = { readonly id: string; readonly name: string; readonly description: string };

export function nameRole(
  texts: Readonly<Record<string, string>>,
  { id, name }: Pick<NamedRole, 'id' | 'name'>,
): string {
  return texts[id] ?? name;
}

export function describeRole(texts: Readonly<Record<string, string>>, { id, description }: NamedRole): string {
  return texts[`${id}_hint`] ?? description;
}
