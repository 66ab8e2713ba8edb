import TrustArcTop from './trustarc-top';
import CookieBot from './cookiebot';
import SourcePointFrame from './sourcepoint-frame';
import ConsentManager from './consentmanager';
import Evidon from './evidon';
import Onetrust from './onetrust';
import Klaro from './klaro';
import Uniconsent from './uniconsent';
import Conversant from './conversant';
import Tiktok from './tiktok';
import Tumblr from './tumblr-com';
import Admiral from './admiral';

export const dynamicCMPs = [
    TrustArcTop,
    CookieBot,
    SourcePointFrame,
    ConsentManager,
    Evidon,
    Onetrust,
    Klaro,
    Uniconsent,
    Conversant,
    Tiktok,
    Tumblr,
    Admiral,
];
