/** Names of the pages, by the part of the path that leads to them. The navigation and the path in the header show the same. */
import { defineTexts } from '../texts/texts.ts';

export const PLACE_TEXTS = defineTexts(
  {
    home: 'Home',
    'first-bill': 'First bill',
    customers: 'Customers',
    usage: 'Usage',
    events: 'Events',
    meters: 'Meters',
    plans: 'Plans',
    subscriptions: 'Subscriptions',
    invoices: 'Invoices',
    wallets: 'Wallets',
    'api-keys': 'API keys',
    webhooks: 'Webhooks',
    settings: 'Settings',
  },
  {
    de: {
      home: 'Start',
      'first-bill': 'Erste Rechnung',
      customers: 'Kunden',
      usage: 'Nutzung',
      events: 'Ereignisse',
      meters: 'Zähler',
      plans: 'Tarife',
      subscriptions: 'Abonnements',
      invoices: 'Rechnungen',
      wallets: 'Guthaben',
      'api-keys': 'API-Schlüssel',
      webhooks: 'Webhooks',
      settings: 'Einstellungen',
    },
  },
);
