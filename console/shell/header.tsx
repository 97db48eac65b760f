/** The header: the path of the page, the search, the zone, the language and the theme. */
import { Menu, UnstyledButton, useMantineColorScheme } from '@mantine/core';
import { Link, useLocation, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useOpenOverlay } from '../components/overlays.ts';
import { defineTexts, LANGUAGES, type Language, useLanguage, useTexts } from '../texts/texts.ts';
import { useChooseLanguage } from './language.tsx';
import { PLACE_TEXTS } from './place-texts.ts';
import styles from './shell.module.css';

const SHORTCUT = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘K' : 'Ctrl K';

export function Header(): ReactNode {
  const texts = useTexts(TEXTS);
  const open = useOpenOverlay();
  return (
    <header className={styles.header}>
      <Crumbs />
      <button type="button" className={styles.find} onClick={() => open?.('search')}>
        <span>{texts.search}</span>
        <kbd>{SHORTCUT}</kbd>
      </button>
      <Preferences />
    </header>
  );
}

/** The list above a record. The record itself is named by the heading of its page. */
function Crumbs(): ReactNode {
  const places: Readonly<Record<string, string>> = useTexts(PLACE_TEXTS);
  const { environment_id } = useParams({ from: '/env/$environment_id' });
  const { pathname } = useLocation();
  const [area, ...rest] = pathname.split('/').slice(3).filter(Boolean);
  const name = places[area ?? 'home'];
  if (typeof name !== 'string') return <div className={styles.crumb} />;
  return (
    <div className={styles.crumb}>
      {rest.length === 0 ? <b>{name}</b> : <Link to={`/env/${environment_id}/${area}` as '/'}>{name}</Link>}
    </div>
  );
}

function Preferences(): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const chooseLanguage = useChooseLanguage();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { zone } = useSearch({ from: '/env/$environment_id' });
  const navigate = useNavigate();
  const open = useOpenOverlay();
  const chosen = (is: boolean) => (is ? '✓' : undefined);
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <UnstyledButton className={styles.preferences}>
          <span className="visually-hidden">{texts.preferences}: </span>
          {zone === 'browser' ? texts.local : 'UTC'} · {language.toUpperCase()}
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{texts.zone}</Menu.Label>
        <Menu.Item
          rightSection={chosen(zone !== 'browser')}
          onClick={() => void navigate({ to: '.', search: (old) => ({ ...old, zone: 'utc' as const }) })}
        >
          UTC
        </Menu.Item>
        <Menu.Item
          rightSection={chosen(zone === 'browser')}
          onClick={() => void navigate({ to: '.', search: (old) => ({ ...old, zone: 'browser' as const }) })}
        >
          {texts.browserZone}
        </Menu.Item>
        <Menu.Label>{texts.language}</Menu.Label>
        {(Object.entries(LANGUAGES) as [Language, string][]).map(([tag, name]) => (
          <Menu.Item key={tag} rightSection={chosen(tag === language)} onClick={() => chooseLanguage(tag)} lang={tag}>
            {name}
          </Menu.Item>
        ))}
        <Menu.Label>{texts.theme}</Menu.Label>
        {(['auto', 'light', 'dark'] as const).map((scheme) => (
          <Menu.Item key={scheme} rightSection={chosen(scheme === colorScheme)} onClick={() => setColorScheme(scheme)}>
            {texts[scheme]}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item rightSection={<kbd>?</kbd>} onClick={() => open?.('keys')}>
          {texts.keys}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

const TEXTS = defineTexts(
  {
    search: 'Search customers, invoices, events…',
    preferences: 'Zone, language and theme',
    zone: 'Times',
    local: 'Local time',
    browserZone: 'Zone of this browser',
    language: 'Language',
    theme: 'Theme',
    keys: 'Keys…',
    auto: 'As the system',
    light: 'Light',
    dark: 'Dark',
  },
  {
    de: {
      search: 'Kunden, Rechnungen, Ereignisse suchen…',
      preferences: 'Zeitzone, Sprache und Farben',
      zone: 'Zeiten',
      local: 'Ortszeit',
      browserZone: 'Zone dieses Browsers',
      language: 'Sprache',
      theme: 'Farben',
      keys: 'Tasten…',
      auto: 'Wie das System',
      light: 'Hell',
      dark: 'Dunkel',
    },
  },
);
