/** The terminal emulator, loaded with the first terminal that is shown. */
import '@xterm/xterm/css/xterm.css';

export { FitAddon } from '@xterm/addon-fit';
export { SearchAddon } from '@xterm/addon-search';
export { WebLinksAddon } from '@xterm/addon-web-links';
export { type IMarker, Terminal } from '@xterm/xterm';
