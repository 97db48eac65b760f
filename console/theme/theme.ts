/** Mantine under the tokens of the console: sizes and colours come from tokens.css, so that both themes change in one place. */
import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from '@mantine/core';

/** Mantine wants ten shades of each colour; the console has one ink, which differs by theme. */
const INK = Array.from({ length: 10 }, () => 'var(--ink)') as unknown as MantineColorsTuple;

export const theme = createTheme({
  fontFamily: 'var(--sans)',
  fontFamilyMonospace: 'var(--mono)',
  primaryColor: 'ink',
  colors: { ink: INK },
  fontSizes: { xs: '12px', sm: '13px', md: '13px', lg: '15px', xl: '22px' },
  lineHeights: { xs: '18px', sm: '20px', md: '20px', lg: '22px', xl: '28px' },
  radius: { xs: '4px', sm: '6px', md: '6px', lg: '8px', xl: '8px' },
  spacing: { xs: '4px', sm: '8px', md: '12px', lg: '16px', xl: '24px' },
  defaultRadius: 'sm',
  respectReducedMotion: true,
  components: {
    TextInput: { defaultProps: { size: 'sm' } },
    Checkbox: { defaultProps: { iconColor: 'var(--paper)' } },
    Radio: { defaultProps: { iconColor: 'var(--paper)' } },
    Select: { defaultProps: { size: 'sm', checkIconPosition: 'right' } },
    Modal: { defaultProps: { centered: true, transitionProps: { duration: 120 }, radius: 'lg' } },
    // A `header` inside a dialogue would be a second banner of the document.
    ModalHeader: { defaultProps: { component: 'div' } },
    Menu: { defaultProps: { transitionProps: { duration: 120 } } },
    // Keyboard and touch also open the reason of a blocked action.
    Tooltip: {
      defaultProps: { openDelay: 300, multiline: true, maw: 320, events: { hover: true, focus: true, touch: true } },
    },
  },
});

/** Variables of Mantine that name a colour of ours, in both themes. */
const COLOURS = {
  '--mantine-color-body': 'var(--paper)',
  '--mantine-color-text': 'var(--ink)',
  '--mantine-color-default': 'var(--sheet)',
  '--mantine-color-default-hover': 'var(--well)',
  '--mantine-color-default-color': 'var(--ink)',
  '--mantine-color-default-border': 'var(--edge)',
  '--mantine-color-dimmed': 'var(--ink-3)',
  '--mantine-color-placeholder': 'var(--ink-3)',
  '--mantine-color-error': 'var(--bad)',
  '--mantine-color-anchor': 'var(--ink)',
  '--mantine-primary-color-contrast': 'var(--paper)',
  '--mantine-primary-color-filled': 'var(--ink)',
  '--mantine-primary-color-filled-hover': 'var(--ink-2)',
};

export const resolveVariables: CSSVariablesResolver = () => ({
  variables: { '--mantine-cursor-type': 'pointer' },
  light: COLOURS,
  dark: COLOURS,
});
